"""Programs on a PTY: the screen as a person would see it, the transcript, waits, and the exit.

`session.PtySession` joins the parts and needs no server; `automation` serves sessions to clients.
No module here knows escapes, pages or Lua: a session is given its claimants and its predicate
runner.

    session           one program with all the parts below: reads output, runs actions, wakes waits
    actions           the actions of callers on a program, as values, and the errors they raise
    pty               a child on a real terminal: output, input and exit
    line_discipline   the present settings of the kernel's line editing
    scheduler         shares the event loop between programs that print without pause
    screen            output bytes in; rows, cursor, modes and replies out
    emulator          libghostty-vt, of which `libghostty` is the binding; `packed_rows` reads its
                        cells, `key_encoder` encodes keys and the mouse by its modes, and
                        `scrollback_pool` shares memory between all scrollbacks
    cells             the content of a screen, as values
    keys              names of keys, and the bytes of pasted text
    transcript        printed text, bounded, with a cursor that only rises
    raw_transcript    a file with every byte of output, unchanged
    recording         asciicast files: written, read, and recorded from a live session
    playback          the screens of a recording: one moment, each in turn, any at once
    recording_search  the times at which a text stood on the screen of a recording
    recording_comparison  where the screens of two recordings differ
    shown_screen      screens as a person sees them: characters, and styles in words
    screen_difference the difference between two of them, in words and side by side
    redact            removes secrets from a screen in place, and from texts about it
    waits             matchers in, evidence out
    input_state       what the program waits for, with the evidence: a pure function of facts that
                        `input_watch` gathers from the kernel, `status_escapes` (what the program
                        says) and `screen_prompts` (what the screen shows)
    patterns          regular expressions of callers, on RE2
    pictures          a screen as text, ANSI, SVG, HTML or PNG
    background_import loads a module in a thread that the process does not wait for
"""
