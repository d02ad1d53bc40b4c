// A player that ends with the first step.
process.send?.({ type: 'ready' })
process.once('message', () => process.exit(1))
