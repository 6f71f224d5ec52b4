"""Files: model folders and atomic writes. Nothing read here is ever executed."""
