"""What ages and goes: plans that are shown, applied and undone. No engine is known here."""
