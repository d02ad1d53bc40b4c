import { Panel } from '../components/panel.js'

export function TourPanel() {
  return (
    <Panel id="tour" title="Tour" about="">
      {null}
    </Panel>
  )
}
