"""What an agent needs beside Python: Delta's jars, and a class archive for a faster start. `console setup` puts them there."""
