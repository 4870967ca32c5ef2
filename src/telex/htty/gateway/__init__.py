"""The web server at which a person's browser opens the pages of programs: one port, many hosts.

pages             `Page`, and `Pages`: all pages of one process
gateway           `Gateway`: the web server, with authentication for each page; forwards WebSockets
gateway_request   one HTTP request of a browser, forwarded to the program, and error responses
header_policy     which header fields are forwarded, in both directions
"""
