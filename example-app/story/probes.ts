import type { RequestListener } from 'node:http'

/** Puts `/livez` and `/readyz` before the app, as `serveUntilSignal` does for a receiver of its own. */
export function withProbes(app: RequestListener, health: () => object): RequestListener {
  return (req, res) => {
    const answers: Readonly<Record<string, () => object>> = {
      '/livez': () => ({ phase: 'ready' }),
      '/readyz': () => ({ phase: 'ready', ...health() }),
    }
    const answer = answers[req.url ?? '']
    if (answer === undefined) {
      app(req, res)
      return
    }
    res.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
    res.end(JSON.stringify(answer()))
  }
}
