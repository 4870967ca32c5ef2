"""A program on a PTY: its screen as a person would see it, its words, its end.

`session.PtySession` joins the parts and is usable without any server; `automation` serves sessions
to a peer. Nothing here knows of escapes, pages or Lua: a session is given its claimants and its
predicate runner.

    session           all of these around one program: output in, actions out, waits woken
    actions           what callers do to a program, as values, and what that may raise
    pty               a child on a real terminal: bytes out, bytes in, its end
    line_discipline   what the kernel's own line editing does now
    scheduler         whose output is next, where many print without pause
    screen            bytes in; rows, cursor, modes and replies out
    emulator          libghostty-vt, of which `libghostty` is the binding; `packed_rows` reads its
                        cells, `key_encoder` encodes keys and the mouse by its modes, and
                        `scrollback_pool` shares memory between all scrollbacks
    cells             what a screen looks like, as values
    keys              names of keys, and text as the bytes a terminal would send
    transcript        what was printed, bounded, with a cursor that only rises
    raw_transcript    every byte to a file, as it came
    recording         what happened, as asciicast, also of a live session
    redact            secrets out of a screen, in place, and out of what is said about it
    waits             what to wait for: matchers in, evidence out
    patterns          regular expressions of callers, on RE2
    pictures          a screen as text, ANSI, SVG, HTML or PNG
    background_import loading a module in a thread that the process does not wait for
"""
