"""What readers do on a page."""


def set_range(page, label, value):
    """Drags the slider of a name to a value."""
    slider = page.get_by_role("slider", name=label)
    slider.evaluate("(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value)
