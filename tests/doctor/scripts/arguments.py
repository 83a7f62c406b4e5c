"""Arguments with argparse, and a lot of output; --endless never ends."""

import argparse
import sys
import time

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--lines", type=int, required=True)
parser.add_argument("--endless", action="store_true")
parser.add_argument("words", nargs="*")
options = parser.parse_args()
dist.init_process_group("gloo")
print(f"words: {options.words} as {__name__} in {sys.argv[0]}")
for number in range(options.lines):
    print(f"line {number} {'x' * 80}", file=sys.stderr if number % 2 else sys.stdout)
while options.endless:
    dist.all_reduce(torch.ones(1))
    time.sleep(0.01)
dist.barrier()
