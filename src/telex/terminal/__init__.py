"""A program on a PTY: its screen as a person would see it, its words, its end.

`session.PtySession` joins the parts and is usable without any server; `service` serves sessions to
a peer. Nothing here knows of escapes, pages or Lua: a session is given its claimants and its
predicate runner.

    pty          a child on a real terminal: bytes out, bytes in, its end
    outbox       what was typed and the kernel has not taken yet
    turns        whose output is next, where many print without pause
    discipline   what the terminal's own line editing does now
    screen       libghostty-vt behind our interface: bytes in, rows and replies out
                   (libghostty, ghostty, frames, packed, replies, restoring, encoding);
                   scrollbacks shares the memory of all
    cells        what a screen looks like, as values
    pictures     the same as text, ANSI, SVG, HTML or PNG
    transcript   what was printed, bounded, with a cursor that only rises
    keys         names of keys, and text as the bytes a terminal would send
    acting       what callers do to a program, in order
    matchers     a moment in, evidence out (awaited, texts, states, branches,
                   patterns, evidence, nearest)
    since, echo  what is new on a screen since a mark, and what is only an echo
    marks        the moments a caller can point back at
    moment       one moment of a session, live or kept
    waiting      who waits for what; named_waits can be ended by name
    masking      secrets out of a screen, in place
    recording    what happened, as asciicast; recorder writes it for a live session
    raw_transcript  every byte to a file, as it came
    program      what to start
    session      all of these around one program
    registry     the sessions of one server
    telling      what leaves a session, in the shapes of the wire
    notices, attachments, leases, connection   what belongs to one connection
    bindings     which adapters have a hand on which session
    problems     what a session raises, as errors of the protocol
    service      sessions for a peer; following has recordings and attachments
"""
