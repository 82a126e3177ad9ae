"""The verbs: each decides first, as a plan, and then acts through an engine."""
