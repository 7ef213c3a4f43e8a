"""What `d2lmini.renamed` lists is found in the book by its former address, too: on the page of the API, and figures."""

from sphinx.transforms import SphinxTransform

from d2lmini import renamed

_MODULES = {old.split(".")[-1]: new.split(".")[-1] for old, new in renamed.MODULES.items()}
_FORMER = {new: old for old, new in (renamed.NAMES | _MODULES).items()}


def former(address):
    """The address that something had before, as ``d2lmini.choices.ByName`` or ``fig-two-words``; else the same one."""
    if address.startswith("fig-"):
        name = address.removeprefix("fig-").replace("-", "_")
        return "fig-" + _FORMER.get(name, name).replace("_", "-")
    if address.startswith(("d2lmini.", "module-d2lmini.")):
        return ".".join(_FORMER.get(part, part) for part in address.split("."))
    return address


class FormerAddresses(SphinxTransform):
    default_priority = 207  # after figure_numbers.Numbers

    def apply(self):
        for address, node in list(self.document.ids.items()):
            if address in node.get("ids", ()) and former(address) not in self.document.ids:
                node["ids"].append(former(address))
                self.document.ids[former(address)] = node


def setup(app):
    app.add_transform(FormerAddresses)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
