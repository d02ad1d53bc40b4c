process.send?.('ready')
setInterval(() => process.stdout.write(`${process.argv[2]}\n`), 50)
