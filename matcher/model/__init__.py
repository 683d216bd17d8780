"""What all stages share: expressions, blocks, types, reasons, and how they are stored."""
