"""Waiting for something on a terminal, without polling.

matchers      what a caller wants to wait for, as values
compiler      checks a matcher and makes a condition of it
conditions    pure functions of a moment that answer with evidence
evidence      the moment a condition is shown, and the evidence it answers with
since         what is new since a mark, and what is only the echo of typing
near_misses   what almost matched, for a wait that failed
engine        the waits of one session: woken by output, by input, by one timer each
"""
