"""What a run did in its regions, as files for a CI: JUnit's XML, one page of HTML, Markdown. Pure: values → text."""
