import speaking

other = speaking.introduction(protocolVersion=7)
speaking.serve(handshake=lambda message: speaking.write(id=message["id"], result=other))
