"""What a run did in its regions, as files for a CI: JUnit's XML, one page of HTML, Markdown.

Pure, values → text, but for `reporter`, which collects the values while a run goes on, and `files`.
"""
