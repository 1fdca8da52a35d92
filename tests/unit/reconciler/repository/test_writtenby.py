from hypothesis import given
from hypothesis import strategies as st

from reconciler.repository.messages import with_trailers
from reconciler.repository.writtenby import WRITTEN_BY, WrittenBy, written_by

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=20)
WRITTEN = st.builds(
    WrittenBy,
    workspace=st.sampled_from(["root", "root:shop:web"]),
    resource=st.sampled_from(["configmaps", "deployments.apps"]),
    namespace=st.sampled_from(["", "web"]),
    name=st.sampled_from(["a", "system:b", "with blank"]),
    user=NAMES,
)


@given(st.lists(WRITTEN, max_size=5))
def test_what_is_said_of_each_write_is_read_as_that_write(written: list[WrittenBy]) -> None:
    read = written_by(with_trailers("Write", ["create a"], {WRITTEN_BY: [str(each) for each in written]}))

    assert [each[:3] for each in read] == [each[:3] for each in written]
    assert [each.name for each in read] == [each.name.replace(" ", "%20") for each in written]
    assert all("\n" not in each.user for each in read)


def test_a_plain_user_is_read_as_he_is_called() -> None:
    each = WrittenBy("root:shop", "configmaps", "web", "a", "system:serviceaccount:web:bot with blanks")

    assert written_by(f"Write 1 object\n\n{WRITTEN_BY}: {each}\n") == [each]


def test_only_the_last_paragraph_counts() -> None:
    each = WrittenBy("root", "configmaps", "web", "a", "ann")

    assert written_by(f"Write\n\n{WRITTEN_BY}: {each}\n\nReviewed\n") == []
    assert written_by(f"Write\n\n{WRITTEN_BY}: root configmaps\n{WRITTEN_BY}: \n") == []
