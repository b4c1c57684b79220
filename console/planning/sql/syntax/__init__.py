"""Text to trees and back, as it is written."""
