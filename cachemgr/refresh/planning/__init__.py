"""What a refresh will do, decided before anything is done: from how everything stands to a list of
frozen stages. Pure."""
