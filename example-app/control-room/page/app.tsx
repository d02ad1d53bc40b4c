import { ConnectionState } from './components/connection-state.js'
import { Navigation } from './components/navigation.js'
import { Totals } from './components/totals.js'
import { ComposePanel } from './panels/compose.js'
import { DenylistPanel } from './panels/denylist.js'
import { EventsPanel } from './panels/events.js'
import { KeysPanel } from './panels/keys.js'
import { MetricsPanel } from './panels/metrics.js'
import { TourPanel } from './panels/tour.js'
import { ViewsPanel } from './panels/views.js'
import { WritesPanel } from './panels/writes.js'

export function App() {
  return (
    <>
      <a class="skip" href="#compose">
        Skip to the first panel
      </a>
      <header class="head">
        <h1>Control room</h1>
        <p class="lead">Send good and hostile calls, and compare what caller and operator see.</p>
        <ConnectionState />
        <Totals />
      </header>
      <Navigation />
      <main>
        <div class="beside">
          <ComposePanel />
          <ViewsPanel />
        </div>
        <TourPanel />
        <KeysPanel />
        <WritesPanel />
        <DenylistPanel />
        <MetricsPanel />
        <EventsPanel />
      </main>
      <footer class="foot muted">
        Everything here is real: real processes, requests, keys and records. The core is a stand-in
        that mints any token it is asked for, so the page is served on this machine only.
      </footer>
    </>
  )
}
