"""What readers do on a page."""

SPOKEN = ("label-content-name-mismatch", "empty-table-header", "region")  # what a voice and a screen reader go by


def set_range(page, label, value):
    """Drags the slider of a name to a value."""
    slider = page.get_by_role("slider", name=label)
    slider.evaluate("(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value)


def faults_of(page, *rules):
    """What axe finds against rules, also those that it does not ask by itself. Returns: list of (rule, HTML).

    A formula is no empty header: axe does not see the MathML that MathJax puts there for screen readers.
    """
    from axe_playwright_python.sync_playwright import Axe

    options = {"runOnly": {"type": "rule", "values": list(rules)}, "resultTypes": ["violations"]}
    found = Axe().run(page, options=options).response["violations"]
    formula = "mjx-assistive-mml"
    return [
        (rule["id"], node["html"][:150])
        for rule in found
        for node in rule["nodes"]
        if rule["id"] != "empty-table-header" or not page.locator(f"{node['target'][0]} {formula}").count()
    ]
