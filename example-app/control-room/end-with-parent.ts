/**
 * Ends this process with the one that has started it, even where that one was gone before this was
 * loaded. Ctrl-C goes to the whole group of processes; the parent ends its own itself.
 */
export function endWithParent(): void {
  process.on('SIGINT', () => undefined)
  process.once('disconnect', () => process.exit(0))
  if (!process.connected) process.exit(0)
}
