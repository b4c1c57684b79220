"""The outcome of a run, as files for a CI: JUnit's XML, one page of HTML, Markdown.

Pure (values → text), except `reporter`, which collects the values during a run, and `files`.
"""
