"""Where the browser denies the page its storage, the theme's scripts have one in memory instead of an error each: the
button of the theme works until the page is left. Ours have no part in it: they say that nothing is kept."""

SCRIPT = """
<script>
try { localStorage.length; } catch (denied) {
  const kept = new Map(), theirs = (name) => { if (name.startsWith("d2lmini:")) throw denied; return name; };
  Object.defineProperty(window, "localStorage", { value: {
    getItem: (name) => kept.get(theirs(name)) ?? null,
    setItem: (name, value) => { kept.set(theirs(name), value); },
    removeItem: (name) => { kept.delete(theirs(name)); },
  } });
}
</script>"""


def _before_the_theme(app, pagename, templatename, context, doctree):
    context["metatags"] = (context.get("metatags") or "") + SCRIPT


def setup(app):
    app.connect("html-page-context", _before_the_theme)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
