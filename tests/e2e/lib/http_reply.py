"""What the HTTP servers of the test bed have in common."""

import http.server


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with whole bodies and keeps quiet about it."""

    def body(self):
        """That of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def reply(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
