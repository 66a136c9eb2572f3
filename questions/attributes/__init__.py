"""Questions about attributes of peers: metrics of groups, and which groups link to which."""
