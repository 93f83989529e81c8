# SPDX-License-Identifier: BSD-2-Clause
"""Python objects and buffers over MPI, as programs with mpi4py send them.

Started by mpirun on two ranks or more; the exit status of a rank is not 0 when
one of its tests failed.
"""
import array
import sys
import unittest

from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

WORLD = MPI.COMM_WORLD
RANK = WORLD.Get_rank()
SIZE = WORLD.Get_size()
NEXT = (RANK + 1) % SIZE
PREVIOUS = (RANK - 1) % SIZE


def square(value):
    """A task of the executor, called at a worker."""
    return value * value


class Objects(unittest.TestCase):
    """Pickled objects: their length is found by a matched probe."""

    def test_sendrecv(self):
        for size in (0, 10, 1000, 100000):
            mine = {"rank": RANK, "data": list(range(size))}
            got = WORLD.sendrecv(mine, dest=NEXT, source=PREVIOUS)
            self.assertEqual(
                got, {"rank": PREVIOUS, "data": list(range(size))})

    def test_nonblocking(self):
        sends = [WORLD.isend((RANK, i), dest=NEXT, tag=i) for i in range(200)]
        for i in reversed(range(200)):
            self.assertEqual(
                WORLD.recv(source=PREVIOUS, tag=i), (PREVIOUS, i))
        MPI.Request.waitall(sends)

    def test_collectives(self):
        for root in range(SIZE):
            text = WORLD.bcast("of %d" % root if RANK == root else None, root)
            self.assertEqual(text, "of %d" % root)
            parts = WORLD.gather(RANK, root)
            if RANK == root:
                self.assertEqual(parts, list(range(SIZE)))
            self.assertEqual(WORLD.scatter(parts, root), RANK)
        self.assertEqual(WORLD.allreduce(RANK), SIZE * (SIZE - 1) // 2)
        self.assertEqual(
            WORLD.alltoall([(RANK, i) for i in range(SIZE)]),
            [(i, RANK) for i in range(SIZE)])


class Buffers(unittest.TestCase):
    """Memory of Python's own arrays."""

    def test_allreduce(self):
        mine = array.array("d", [RANK + i for i in range(50000)])
        total = array.array("d", [0.0] * len(mine))
        WORLD.Allreduce(mine, total)
        for i in (0, 1, 49999):
            self.assertEqual(total[i], SIZE * (SIZE - 1) / 2 + i * SIZE)

    def test_window(self):
        window = MPI.Win.Allocate(8 * SIZE, 8, comm=WORLD)
        window.Fence()
        for rank in range(SIZE):
            window.Put(array.array("q", [RANK + 1]), rank, RANK)
        window.Fence()
        self.assertEqual(
            list(memoryview(window.tomemory()).cast("q")),
            list(range(1, SIZE + 1)))
        window.Free()

    def test_new_communicator(self):
        half = WORLD.Split(RANK % 2, RANK)
        self.assertEqual(
            half.allgather(RANK), list(range(RANK % 2, SIZE, 2)))
        half.Free()


class Futures(unittest.TestCase):
    """One rank hands tasks to the others."""

    def test_map(self):
        with MPICommExecutor(WORLD, root=0) as executor:
            if executor is not None:
                self.assertEqual(
                    list(executor.map(square, range(100))),
                    [i * i for i in range(100)])


if __name__ == "__main__":
    PROGRAM = unittest.main(exit=False, verbosity=0)
    sys.exit(not PROGRAM.result.wasSuccessful())
