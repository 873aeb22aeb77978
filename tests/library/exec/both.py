"""Serves files of the image over the library's loopback, and fetches them from another thread."""
import hashlib
import http.server
import os
import threading
import urllib.request

os.chdir("/mnt")
assert os.getcwd() == "/mnt" and "big" in os.listdir(".")


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = "http://127.0.0.1:%d/big" % server.server_port
digests = []


def fetch():
    digests.append(hashlib.sha256(urllib.request.urlopen(url).read()).hexdigest())


threads = [threading.Thread(target=fetch) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with open("big", "rb") as file:
    assert digests == [hashlib.sha256(file.read()).hexdigest()] * 8
server.shutdown()
print("eight equal answers")
