"""The mutations of a program: each compiles, changes what it says, and is drawn by a seed."""

from __future__ import annotations

import ast

from tests.harness.mutations.points import drawn, java_mutations, python_mutations

SOURCE = '''
def short(x):
    return x > 1


def longer(x, é):
    """Of enough lines."""
    total = 0
    for each in x:
        if not each and é == "é" and each < 3:
            continue
        total = total + each
        print(total)
    return total
'''
JAVA = """public final class A {
    static boolean longer(String a, int b) {
        // a == b
        if (a == null && b < 3) {
            return true;
        }
        int c = b;
        c++;
        return false;
    }

    static boolean little(int b) {
        return b == 1;
    }
}
"""


def test_each_mutation_of_python_is_another_program() -> None:
    found = list(python_mutations("a.py", SOURCE))
    texts = {each.applied(SOURCE) for each in found}
    assert {each.name for each in found} == {"a.py:longer"}
    assert len(texts) == len(found) > 8
    assert all(ast.dump(ast.parse(text)) != ast.dump(ast.parse(SOURCE)) for text in texts)
    told = {each.told(SOURCE) for each in found}
    assert 'é == "é" -> ((é) != ("é"))' in told
    assert any("total + each -> ((total) - (each))" in each for each in told)
    assert "print(total) -> pass" in told and "return total -> return None" in told


def test_mutations_of_java_stand_in_long_methods_and_in_no_comment() -> None:
    found = list(java_mutations("A.java", JAVA))
    assert {each.function for each in found} == {"longer"}
    assert {each.line for each in found} == {4, 5, 9}
    assert any("if (a != null && b < 3) {" in each.applied(JAVA) for each in found)


def test_a_seed_draws_the_same_functions() -> None:
    found = {"a.py": list(python_mutations("a.py", SOURCE))}
    shares = [(frozenset(found), 3)]
    assert drawn(found, 1, shares) == drawn(found, 1, shares)
    assert len(drawn(found, 1, shares)) == 1  # of one function one place
    assert len({each for seed in range(50) for each in drawn(found, seed, shares)}) > 5


def test_the_first_few_are_of_every_share() -> None:
    functions = [SOURCE.replace("def ", f"def a{number}_") for number in range(8)]
    found = {f"{number}.py": list(python_mutations(f"{number}.py", text))
             for number, text in enumerate(functions)}  # fmt: skip
    few, many = frozenset({"0.py", "1.py"}), frozenset(found) - {"0.py", "1.py"}
    first = drawn(found, 1, [(few, 2), (many, 6)])[:4]
    assert sum(each.path in few for each in first) == 1
