import { Panel } from '../components/panel.js'

export function WritesPanel() {
  return (
    <Panel id="writes" title="Writes" about="">
      {null}
    </Panel>
  )
}
