"""Run by the system's Python, which has Samba's: HOST PORT OPTIONS USER PASSWORD SMB_CONF.

OPTIONS as in a binding string, `sign,spnego`; an empty USER is anonymous, `name@REALM` Kerberos.
"""

import sys

from samba.credentials import DONT_USE_KERBEROS, MUST_USE_KERBEROS, Credentials
from samba.dcerpc import echo
from samba.param import LoadParm


def main(host: str, port: str, options: str, user: str, password: str, smb_conf: str) -> None:
    settings = LoadParm(smb_conf)
    credentials = Credentials()
    credentials.guess(settings)
    if user:
        name, _, realm = user.partition("@")
        credentials.set_username(name)
        credentials.set_password(password)
        credentials.set_domain("DOM")
        credentials.set_workstation("READER")
        if realm:
            credentials.set_realm(realm)
        credentials.set_kerberos_state(MUST_USE_KERBEROS if realm else DONT_USE_KERBEROS)
    else:
        credentials.set_anonymous()
    place = ",".join(filter(None, (port, options)))
    connection = echo.rpcecho(f"ncacn_ip_tcp:{host}[{place}]", settings, credentials)
    assert connection.AddOne(41) == 42
    data = [number & 255 for number in range(12_345)]
    assert connection.EchoData(data) == data  # fragments to the server
    assert len(connection.SourceData(1 << 20)) == 1 << 20  # and back
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
