"""Objects to text: tables, JSON, YAML, names, JSONPath templates, in kubectl's own shapes.

Nothing here fetches, prints or reads a clock. Every iterator yields chunks of text to be written as they are, newlines
included (`stream.writelines(...)`), because what kubectl prints for a JSONPath template does not end in one.
"""
