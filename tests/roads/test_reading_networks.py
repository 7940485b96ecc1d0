"""Network files: both forms, and every fault with its file and line."""

import numpy as np
import pytest

from retrasyn.errors import InputError
from retrasyn.roads.network import DisconnectedNetworkWarning
from retrasyn.roads.reading_networks import read_network

C_NODES = "0 0.0 0.0\n1 3.0 4.0\n2 6.0 8.5\n"
C_EDGES = "0 0 1 5.0\n1 1 2 7.25\n"
T_NODES = "70\t0\t0\t*\n71\t3\t4\t*\n72\t6\t8\t*\n"
T_EDGES = "900\t70\t71\t2\t*\n901\t72\t71\t6\t*\n"
C_NAMES = ("map.cnode", "map.cedge")
T_NAMES = ("map_node.txt", "map_edge.txt")


def write_pair(folder, names, nodes, edges):
    for name, text in zip(names, (nodes, edges), strict=True):
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / names[0]


@pytest.mark.parametrize("given_name", C_NAMES)
def test_cnode_and_cedge_are_read_by_either_name(given_name, tmp_path):
    write_pair(tmp_path, C_NAMES, C_NODES, C_EDGES)

    network = read_network(tmp_path / given_name)

    assert network.x.tolist() == [0, 3, 6]
    assert network.y.tolist() == [0, 4, 8.5]
    assert network.length.tolist() == [5, 7.25]


@pytest.mark.parametrize("given_name", T_NAMES)
def test_the_generator_form_is_read_by_either_name(given_name, tmp_path):
    write_pair(tmp_path, T_NAMES, T_NODES, T_EDGES)

    network = read_network(str(tmp_path / given_name))

    assert network.x.tolist() == [0, 3, 6]
    assert network.road_class.tolist() == [2, 6]
    assert network.length.tolist() == [5, 5]


def test_a_byte_order_mark_blank_lines_and_windows_lines_do_no_harm(tmp_path):
    path = write_pair(
        tmp_path, C_NAMES, b"\xef\xbb\xbf" + C_NODES.replace("\n", "\r\n\r\n").encode(), C_EDGES
    )

    assert read_network(path).n_nodes == 3


@pytest.mark.parametrize(
    ("names", "nodes", "edges", "where", "what"),
    [
        (C_NAMES, "0 0.0 0.0\n1 3.0\n", C_EDGES, "map.cnode, line 2", "has 2 fields"),
        (C_NAMES, C_NODES, "0 0 1 5.0\n\n1 1 2", "map.cedge, line 3", "has 3 fields"),
        (C_NAMES, C_NODES.replace(" ", ","), C_EDGES, "map.cnode, line 1", "separated by blanks"),
        (C_NAMES, C_NODES, C_EDGES.replace(" ", ";"), "map.cedge, line 1", "separated by blanks"),
        (T_NAMES, T_NODES.replace("\t", " "), T_EDGES, "map_node.txt, line 1", "by tabs"),
        (T_NAMES, T_NODES, T_EDGES[:-2], "map_edge.txt, line 2", "'' at its end"),
        (T_NAMES, T_NODES[:-4], T_EDGES, "map_node.txt, line 3", "has 3 fields"),
        (T_NAMES, T_NODES, T_EDGES.replace("\t6", "\t7"), "map_edge.txt, line 2", "class is '7'"),
        (T_NAMES, T_NODES, T_EDGES.replace("72", "99"), "map_edge.txt, line 2", "to node 99"),
        (C_NAMES, C_NODES, C_EDGES + "2 0 3 1.0\n", "map.cedge, line 3", "to node 3"),
        (C_NAMES, C_NODES + "1 5 5\n", C_EDGES, "map.cnode, line 4", "node id 1 stands on line 2"),
        (C_NAMES, C_NODES, C_EDGES + "0 0 2 9\n", "map.cedge, line 3", "edge id 0 stands on"),
        (C_NAMES, C_NODES.replace("3.0", "nan"), C_EDGES, "map.cnode, line 2", "x is 'nan'"),
        (C_NAMES, C_NODES.replace("3.0", "3_0"), C_EDGES, "map.cnode, line 2", "x is '3_0'"),
        (C_NAMES, C_NODES.replace("8.5", "north"), C_EDGES, "map.cnode, line 3", "y is 'north'"),
        (C_NAMES, C_NODES, C_EDGES.replace("7.25", "-7"), "map.cedge, line 2", "negative"),
        (C_NAMES, "a 0 0\n", C_EDGES, "map.cnode, line 1", "'a' is not an id"),
        (C_NAMES, b"0 0 0\n1 \xff 3\n", C_EDGES, "map.cnode, line 2", "not plain text"),
        (C_NAMES, "0 " * 500, C_EDGES, "map.cnode, line 1", "too long"),
        (C_NAMES, "", C_EDGES, "map.cnode", "is empty"),
        (C_NAMES, C_NODES, "", "map.cedge", "is empty"),
        (C_NAMES, "\n \n", C_EDGES, "map.cnode", "blank"),
        (C_NAMES, C_NODES, "0 1 1 0\n", "map.cedge", "at least 2 connected nodes"),
    ],
)
def test_a_fault_is_named_with_its_file_and_line(names, nodes, edges, where, what, tmp_path):
    path = write_pair(tmp_path, names, nodes, edges)

    with pytest.raises(InputError) as caught:
        read_network(path)

    assert str(tmp_path / where) in str(caught.value)
    assert what in str(caught.value)


def test_a_missing_partner_an_unknown_form_and_a_folder_are_told_apart(tmp_path):
    (tmp_path / "map.cnode").write_text(C_NODES)
    (tmp_path / "other.csv").write_text(C_NODES)
    (tmp_path / "folder.cnode").mkdir()

    for name, what in [
        ("map.cnode", "map.cedge does not exist"),
        ("none.cnode", "none.cnode does not exist; check the path"),
        ("other.csv", "no known form"),
        ("folder.cnode", "is a folder"),
    ]:
        with pytest.raises(InputError, match=what):
            read_network(tmp_path / name)


def test_a_disconnected_file_gives_one_warning_that_names_it(tmp_path):
    path = write_pair(tmp_path, C_NAMES, C_NODES + "3 9 9\n", C_EDGES)

    with pytest.warns(DisconnectedNetworkWarning, match=r"map\.cedge: .* 1 of 4 nodes") as caught:
        network = read_network(path)

    assert len(caught) == 1
    assert np.array_equal(network.x, [0, 3, 6])
