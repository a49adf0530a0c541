#!/bin/sh
# POST a message as a Windows sender does, with curl: post.sh FILE [URL]
# FILE is the body of the request; its first line names the boundary.
set -eu
url=${2:-http://127.0.0.1:8080/msmq/private\$/simpleq}
boundary=$(head -n 1 "$1" | tr -d '\r' | cut -c 3-)
exec curl --silent --show-error --output /dev/null --write-out '%{http_code}\n' \
  --header "Content-Type: multipart/related; boundary=\"$boundary\"; type=text/xml" \
  --header 'SOAPAction: "MSMQMessage"' \
  --data-binary "@$1" "$url"
