"""The n smallest of many keys, each of which is known to one shard only."""
