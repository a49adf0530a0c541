"""Run by the system's Python, which has Samba's: carries calls from stdin to a server.

    HOST PORT OPTIONS USER PASSWORD SMB_CONF UUID

A line of stdin is `OPNUM HEX`; the answer on stdout is `ok HEX`, or `fault` and what Samba says.
"""

import sys

from samba import NTSTATUSError
from samba.credentials import DONT_USE_KERBEROS, Credentials
from samba.dcerpc import mgmt
from samba.dcerpc.base import ClientConnection
from samba.param import LoadParm


def main(
    host: str, port: str, options: str, user: str, password: str, smb_conf: str, uuid: str
) -> None:
    settings = LoadParm(smb_conf)
    credentials = Credentials()
    credentials.guess(settings)
    credentials.set_kerberos_state(DONT_USE_KERBEROS)
    if user:
        credentials.set_username(user)
        credentials.set_password(password)
        credentials.set_domain("SHOP")
        credentials.set_workstation("READER")
    else:
        credentials.set_anonymous()
    place = ",".join(filter(None, (port, options)))
    # Samba looks up how to authenticate by the interface's name, so it binds to one that it knows;
    # ours is another presentation context of that connection (RR-4).
    known = mgmt.mgmt(f"ncacn_ip_tcp:{host}[{place}]", settings, credentials)
    connection = ClientConnection("", (uuid, 1), basis_connection=known)
    for line in sys.stdin:
        opnum, _, stub = line.strip().partition(" ")
        try:
            answer = connection.request(int(opnum), bytes.fromhex(stub))
            print(f"ok {answer.hex()}", flush=True)
        except NTSTATUSError as error:
            print(f"fault {error.args[0]:08x} {error.args[1]}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
