import speaking

no = {"code": -32001, "message": "I speak with nobody."}
speaking.serve(handshake=lambda message: speaking.write(id=message["id"], error=no))
