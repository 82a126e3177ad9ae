"""The face that users see: Lake, Table, Scan. It delegates and holds no logic of its own."""
