import speaking

no = {"code": -32050, "message": "The key `colour` is missing."}
speaking.serve(initialize=lambda message: speaking.write(id=message["id"], error=no))
