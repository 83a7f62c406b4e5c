"""For each rank a list of actions, as text; and the closed forms by the lesson's names."""


def one_f_one_b(num_stages, num_microbatches):
    lists = []
    for rank in range(num_stages):
        warm_up = min(num_stages - rank - 1, num_microbatches)
        order = [f"F{i}" for i in range(warm_up)]
        for i in range(num_microbatches - warm_up):
            order += [f"F{warm_up + i}", f"B{i}"]
        lists.append(order + [f"B{i}" for i in range(num_microbatches - warm_up, num_microbatches)])
    return lists


def gpipe(num_stages, num_microbatches):
    everything = [f"F{i}" for i in range(num_microbatches)] + [f"B{i}" for i in range(num_microbatches)]
    return [list(everything) for _ in range(num_stages)]


def bubble_fraction(num_stages, num_microbatches):
    return (num_stages - 1) / (num_microbatches + num_stages - 1)


def bubble_1f1b(num_stages, num_microbatches):
    return bubble_fraction(num_stages, num_microbatches)
