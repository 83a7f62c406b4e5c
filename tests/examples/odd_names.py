"""Names that tell nobody anything: the table beside it, `odd_names.toml`, says what they stand for."""

from ring_ranked import allreduce_ring


class Everywhere:
    @staticmethod
    def add_up(tensor, rank, world_size):
        return allreduce_ring(tensor, rank, world_size)
