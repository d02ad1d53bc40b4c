import { Panel } from '../components/panel.js'

export function EventsPanel() {
  return (
    <Panel id="events" title="Events" about="">
      {null}
    </Panel>
  )
}
