from kerneltruth.runner.gaps import Gaps, Taken


def test_pieces_come_from_the_first_range_with_room_and_are_aligned():
    gaps = Gaps((0, 1024, 2048, 8192))
    assert [gaps.take(n) for n in (600, 1, 2000, 9000)] == [0, 2048, 2560, None]
    assert gaps.left() == (4608, 8192)
    assert gaps.free == 3584


def test_what_is_taken_leaves_whole_pieces_beside_it():
    gaps = Gaps.beside([(700, 1100), (5000, 5001), (600, 650), (5120, 6144)], 8192)
    assert gaps.left() == (0, 512, 1536, 4608, 6144, 8192)


def test_memory_that_is_taken_to_its_end_leaves_nothing_there():
    assert Gaps.beside([(512, 4096)], 4096).left() == (0, 512)
    assert Gaps.beside([], 0).left() == ()


def test_ranges_meet_where_they_share_a_byte():
    taken = Taken([(10, 20), (15, 30), (40, 41), (50, 50)])
    met = [(0, 10), (29, 30), (30, 40), (40, 50), (41, 60), (0, 100), (12, 12)]
    assert [taken.meet(*each) for each in met] == [False, True, False, True, False, True, False]
