"""Conversion of text to trees and back."""
