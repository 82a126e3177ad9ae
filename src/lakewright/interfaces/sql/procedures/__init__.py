"""What CALL can call; a module of procedures is known once it is named in ``all_procedures``."""
