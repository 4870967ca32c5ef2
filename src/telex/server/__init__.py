"""The one server of telex, and the verbs by which shells and agents use it."""
