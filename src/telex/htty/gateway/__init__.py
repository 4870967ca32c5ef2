"""Where a person's browser opens the pages of programs: one port, one host name for each page.

pages             `Page`, and `Pages`: all of one process
gateway           `Gateway`: the web server, with authentication for each page
gateway_request   one HTTP request of a browser, forwarded to the program, and error responses
websocket_tunnel  one WebSocket, forwarded
header_policy     which header fields are forwarded, either way
"""
