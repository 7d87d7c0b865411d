"""A page of HTML as a test reads it: elements with their attributes and all their text."""

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br"}


class Element:
    """A tag, its attributes, and what stands in it."""

    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children, self.words = [], []

    def __getitem__(self, name):
        return self.attributes.get(name)

    @property
    def text(self):
        """All text in it, in order; spaces at which no line breaks are spaces."""
        text = "".join(part if isinstance(part, str) else part.text for part in self.words)
        return text.replace("\u00a0", " ")

    def all(self, *tags, **attributes):
        """Every element below it with one of the tags and all the attributes."""
        for child in self.children:
            if (not tags or child.tag in tags) and attributes.items() <= child.attributes.items():
                yield child
            yield from child.all(*tags, **attributes)

    def one(self, *tags, **attributes):
        """The only such element."""
        (found,) = self.all(*tags, **attributes)
        return found


class _Builder(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = self.here = Element("", {}, None)

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), f"<{tag}> has an attribute twice"
        element = Element(tag, dict(attrs), self.here)
        self.here.children.append(element)
        self.here.words.append(element)
        if tag not in VOID:
            self.here = element

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.here.tag == tag, f"</{tag}> ends <{self.here.tag}>"
        self.here = self.here.parent

    def handle_data(self, data):
        self.here.words.append(data)


def parsed(text):
    """The root of a page; every element must be closed, in its order."""
    builder = _Builder()
    builder.feed(text)
    builder.close()
    assert builder.here is builder.root, f"<{builder.here.tag}> is not closed"
    return builder.root


def rows(table):
    """Rows of a table's body: [(name of the row, [cells])]."""
    for row in table.one("tbody").all("tr"):
        name, *cells = row.children
        yield name.text, cells


def number(cell):
    """The value that a cell is sorted by; None where it has none."""
    return float(cell["data-v"]) if cell["data-v"] else None
