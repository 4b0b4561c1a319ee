"""What commands share: read, change the declaration, derive, write what differs. Neither prints nor parses flags."""
