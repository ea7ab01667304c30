"""Locks: one at a time, and no file of them is left."""

import threading

from serving.repository.files import locked


def test_a_lock_is_held_by_one_at_a_time_and_leaves_no_file(tmp_path):
    inside, most = [], []

    def work():
        for _ in range(50):
            with locked(tmp_path / "models", "models"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (max(most), len(most)) == (1, 200)
    assert list(tmp_path.iterdir()) == []
